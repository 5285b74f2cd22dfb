// Single slow operations, from the agent's stream `/slow`, while somebody watches.

import { Plot } from "./axis.js";
import { css } from "./color.js";
import { time } from "./format.js";
import { objects } from "./model.js";

const MOST = 500;

export class SlowWatch {
  /** `changed()` is called when operations have come; `ended(reason)` when the stream has. */
  constructor({ changed, ended }) {
    Object.assign(this, { changed, ended, ops: [], leftOut: 0, abort: null });
  }

  get running() {
    return this.abort !== null;
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
  }

  async start(over) {
    this.stop();
    const abort = new AbortController();
    [this.abort, this.ops, this.leftOut] = [abort, [], 0];
    let reason = "The agent has ended the stream.";
    try {
      const answer = await fetch(`/slow?min_latency=${over}&limit=100`, { signal: abort.signal });
      if (answer.ok) {
        for await (const lines of objects(answer.body)) {
          lines.forEach((line) => this.take(line));
          this.changed();
        }
      }
      else reason = (await answer.text()).trim();
    } catch (e) {
      reason = "The agent cannot be reached.";
    }
    if (this.abort !== abort) return;
    this.abort = null;
    this.ended(reason);
  }

  take(line) {
    if (line.left_out !== undefined) {
      this.leftOut += line.left_out;
      return;
    }
    this.ops.unshift({ ...line, at: Date.parse(line.time) / 1000 });
    this.ops.length = Math.min(this.ops.length, MOST);
  }
}

/** Operations as dots: time against the logarithm of the duration. */
export class Scatter {
  constructor(canvas) {
    this.plot = new Plot(canvas);
  }

  draw(view, ops) {
    const { plot } = this;
    plot.begin(view);
    const { g } = plot;
    plot.times();
    const seen = ops.filter((o) => o.at >= view.from && o.at <= view.to);
    if (!seen.length) return;
    const all = seen.map((o) => o.duration_seconds);
    const [low, high] = [Math.min(...all) / 1.3, Math.max(...all) * 1.3];
    const y = (v) => plot.plotHeight * (1 - Math.log(v / low) / Math.log(high / low));
    g.fillStyle = css("--link");
    for (const o of seen) {
      g.beginPath();
      g.arc(plot.x(o.at), y(o.duration_seconds), 3, 0, 7);
      g.fill();
    }
    plot.labels([[y(high), time(high)], [y(Math.sqrt(low * high)), time(Math.sqrt(low * high))], [y(low), time(low)]]);
    plot.selection(view.selection);
  }
}
