// The stream of events: connects, says how it stands, and connects again after the server was away.

import { setText } from "./elements.js";

const RETRY_S = [0.5, 1, 2, 3, 5];

export class Connection {
  #line;
  #handlers;
  #source = null;
  #failures = 0;

  // line: the element that says how the connection stands; handlers: event name -> function of its data.
  constructor(line, handlers) {
    this.#line = line;
    this.#handlers = handlers;
  }

  get isLive() {
    return this.#line.dataset.state === "live";
  }

  start() {
    this.#source?.close();
    const source = (this.#source = new EventSource("events"));
    source.addEventListener("open", () => {
      this.#failures = 0;
      this.#say("live", "Connected");
    });
    source.addEventListener("error", () => this.#lost());
    for (const [name, handle] of Object.entries(this.#handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    }
  }

  // The browser's own attempts end where an answer is an error, so every attempt is made here.
  async #lost() {
    this.#source.close();
    const wait = RETRY_S[Math.min(this.#failures++, RETRY_S.length - 1)];
    this.#say("lost", "The server does not answer; trying again …");
    try {
      const answer = await fetch("captions.json", { cache: "no-store" });
      if (answer.status === 401) {
        this.#say("refused", "The server does not accept this page's token any more: open the address that it printed.");
      } else if (answer.status === 503) {
        this.#say("lost", "The server has as many visitors as it takes; trying again …");
      }
    } catch {
      // It is away.
    }
    setTimeout(() => this.start(), 1000 * wait);
  }

  #say(state, text) {
    this.#line.dataset.state = state;
    setText(this.#line, text);
  }
}
