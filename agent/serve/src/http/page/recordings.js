// Recordings that the agent can open: the list, and windows by the time since their beginning.

/** Windows of one picture. */
const COLUMNS = 300;
/** Answers that are kept. */
const MOST = 4;

export class Shelf {
  /** `ask(path)` gives the agent's answer; `changed()` is called when one has come. */
  constructor(ask, changed) {
    Object.assign(this, { ask, changed, list: [], kept: new Map() });
  }

  /** The list. An agent without a store, or one that denies it, has none. */
  async load() {
    try {
      this.list = (await this.ask("/recordings")).recordings;
    } catch {
      this.list = [];
    }
    this.changed();
  }

  /** A recording, or its known parts while it comes: {began, ended, windows, why}. */
  get(name, zoom) {
    const key = JSON.stringify([name, zoom]);
    const known = this.kept.get(key);
    if (known) return known;
    const coming = { name, host: "", began: 0, ended: 0, windows: [], why: "Reading the recording." };
    this.kept.set(key, coming);
    if (this.kept.size > MOST) this.kept.delete(this.kept.keys().next().value);
    this.read(coming, zoom).then(() => this.changed());
    return coming;
  }

  async read(into, zoom) {
    let path = `/windows?recording=${encodeURIComponent(into.name)}&columns=${COLUMNS}`;
    try {
      if (zoom) {
        // Times of a part count from the beginning.
        if (!this.list.length) await this.load();
        const began = this.list.find((r) => r.name === into.name)?.began ?? 0;
        path += `&from=${began + zoom[0]}&to=${began + zoom[1]}`;
      }
      const news = await this.ask(path);
      const windows = news.windows.map((w) => ({ ...w, at: w.at - news.began }));
      Object.assign(into, news, { windows, ended: news.ended - news.began, why: windows.length ? "" : "Nothing was recorded at this time." });
    } catch (e) {
      into.why = e instanceof TypeError ? "The agent cannot be reached." : e.message;
    }
  }
}
