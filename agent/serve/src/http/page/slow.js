// Single slow operations, from the agent's stream `/slow`, while the user watches.

import { Plot } from "./axis.js";
import { css } from "./color.js";
import { time } from "./format.js";
import { Stream } from "./stream.js";

const MOST = 500;

export class SlowWatch extends Stream {
  ops = [];
  leftOut = 0;
  /** Null while nothing is watched. */
  over = null;

  stop() {
    super.stop();
    this.over = null;
  }

  start(over) {
    this.read(`/slow?min_latency=${over}&limit=100`);
    Object.assign(this, { over, ops: [], leftOut: 0 });
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
