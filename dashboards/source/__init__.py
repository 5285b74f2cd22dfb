"""The dashboards of nfscope, one module each, and what they share."""
