// A stream of the agent: one object a line.

async function* objects(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const lines = text.split("\n");
    text = lines.pop();
    const all = lines.filter(Boolean).map((line) => JSON.parse(line));
    if (all.length) yield all;
  }
}

/** A subclass gets each object in `take(object)`. */
export class Stream {
  abort = null;

  /** `changed()` is called when objects have come; `ended(reason)` when the stream has. */
  constructor({ changed, ended }) {
    Object.assign(this, { changed, ended });
  }

  get running() {
    return this.abort !== null;
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
  }

  async read(path) {
    this.stop();
    const abort = (this.abort = new AbortController());
    let reason = "The agent has ended the stream.";
    try {
      const answer = await fetch(path, { signal: abort.signal });
      if (answer.ok) {
        for await (const some of objects(answer.body)) {
          some.forEach((object) => this.take(object));
          this.changed();
        }
      } else reason = (await answer.text()).trim();
    } catch {
      reason = "The agent cannot be reached.";
    }
    if (this.abort !== abort) return;
    this.stop();
    this.ended(reason);
  }
}
