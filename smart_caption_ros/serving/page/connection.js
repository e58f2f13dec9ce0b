// The stream of events: connects, shows the state of the connection, and reconnects after a failure.

import { setText } from "./elements.js";

const RETRY_S = [0.5, 1, 2, 3, 5];

export class Connection {
  #line;
  #handlers;
  #source = null;
  #failures = 0;

  // line: the element that shows the state of the connection; handlers: event name -> function of its data.
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

  // Reconnect here, because the browser itself gives up after an error response.
  async #lost() {
    this.#source.close();
    const wait = RETRY_S[Math.min(this.#failures++, RETRY_S.length - 1)];
    this.#say("lost", "The server does not answer; trying again …");
    try {
      const answer = await fetch("captions.json", { cache: "no-store" });
      if (answer.status === 401) {
        this.#say("refused", "The server does not accept this page's token any more: open the address that it printed.");
      } else if (answer.status === 503) {
        this.#say("lost", "The server has its maximum number of visitors; trying again …");
      }
    } catch {
      // The server does not answer.
    }
    setTimeout(() => this.start(), 1000 * wait);
  }

  #say(state, text) {
    this.#line.dataset.state = state;
    setText(this.#line, text);
  }
}
