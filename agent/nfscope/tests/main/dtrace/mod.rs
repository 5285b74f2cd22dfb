//! The source for illumos on this machine: with scripted `dtrace` and `kstat`, and with a real D compiler.

mod buckets;
mod emulated;
mod emulator;
mod faults;
mod frames;
mod lint;
mod manifest;
mod played;
mod report;
mod tale;
mod tools;
