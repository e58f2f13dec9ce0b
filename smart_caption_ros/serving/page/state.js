// The state of a camera in words, times in words, and the clock of the server.

const SILENT_S = 5;
const NODE_SILENT_S = 2;

// Whether a time without captions is long for the pace of a camera; points: [seconds, ...]; last: index of the latest.
export function isSilence(seconds, points, last = points.length - 1) {
  const pace = last > 0 ? points[last][0] - points[last - 1][0] : 0;
  return seconds > Math.max(SILENT_S, 3 * pace);
}

// {state, label}: live, warning, silent (its node runs), gone (its node does not), waiting, unknown.
export function stateOf(known, now, isConnected) {
  if (!isConnected) return { state: "unknown", label: "Not connected" };
  const { status, caption, points } = known;
  const age = caption ? now - caption.at : 0;
  if (status && !status.is_online) return { state: "gone", label: "Gone" };
  if (status && !status.is_responding && (!caption || age > NODE_SILENT_S)) return { state: "gone", label: "Node silent" };
  if (!caption) return { state: "waiting", label: "Waiting" };
  if (isSilence(age, points)) return { state: "silent", label: "No captions" };
  if (caption.status === "error") return { state: "warning", label: "Error" };
  return { state: "live", label: "Live" };
}

// "now", "7 s ago", "46 min ago", "3 h ago"; coarse, so that it changes seldom.
export function ago(seconds) {
  if (!(seconds >= 2)) return "now";
  if (seconds < 120) return `${Math.floor(seconds)} s ago`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ago`;
  return `${Math.floor(seconds / 3600)} h ago`;
}

let offsetS = 0; // from the server's clock to this page's

// Take over the server's clock: its time now, of Python's time.monotonic.
export function setServerClock(nowS) {
  offsetS = seconds() - nowS;
}

export const onThisClock = (serverS) => serverS + offsetS;

// Give a caption its time of reception, by this page's clock and in words.
export function dated(caption) {
  caption.at = onThisClock(caption.received_monotonic);
  const date = new Date(Date.now() - 1000 * (seconds() - caption.at));
  caption.time = date.toLocaleTimeString([], { timeStyle: "medium" });
  return caption;
}

export const milliseconds = (value) => (value < 10_000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(0)} s`);
export const seconds = () => performance.now() / 1000;
