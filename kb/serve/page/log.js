// Logs: text that is too long for the box. A log is kept whole here and sent once; the box shows a part of it.

export const MANY_LINES = 60; // from here on a pasted text is a log
const MANY_CHARS = 20_000;
const MAX_BYTES = 12 << 20; // of a longer log the end is read
const MAX_SENT = 2_000_000; // bytes of a request
const PACKED_FROM = 50_000; // bytes; below this packing costs more than it saves
const PIECE = 1 << 18; // characters or bytes that are turned into bytes, or packed, at once
const BUSY_MS = 12; // after this much work the page gets a turn
const AROUND = 150; // lines above and below the one that is looked at
const MAX_COLUMNS = 1000;

export function isLog(text) {
  if (text.length > MANY_CHARS) return true;
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0 && lines < MANY_LINES; at = text.indexOf("\n", at + 1)) lines++;
  return lines >= MANY_LINES;
}

// A log: its name (empty when it was pasted), text, the offset of each line, and how many lines before them were not read.
// `blob` has its bytes where they are not simply those of the text. A long one is read in turns with the page.
export async function logOf(text, name = "", blob = null, skipped = 0) {
  const starts = [0];
  let since = performance.now();
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    starts.push(at + 1);
    if (starts.length % 5000 === 0 && performance.now() - since > BUSY_MS) {
      await pageHasATurn();
      since = performance.now();
    }
  }
  if (starts.length > 1 && starts.at(-1) === text.length) starts.pop();
  return { name, text, starts, skipped, blob, report: null };
}

// The text as UTF-8.
async function blobOf(text) {
  const pieces = [];
  for (let at = 0, end; at < text.length; at = end) {
    end = at + PIECE;
    if (/[\ud800-\udbff]/.test(text[end - 1])) end += 1; // a pair stays together
    if (at) await pageHasATurn();
    pieces.push(new Blob([text.slice(at, end)]));
  }
  return new Blob(pieces);
}

function pageHasATurn() {
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => (port1.close(), done());
    port2.postMessage(null);
  });
}

// The log in a file, packed with gzip or not. Throws an Error "binary", or what the stream says of damaged gzip.
export async function readLog(file) {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isPacked = head[0] === 0x1f && head[1] === 0x8b;
  const stream = isPacked ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  const pieces = [];
  let size = 0;
  let skipped = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    size += value.length;
    while (size - pieces[0].length > MAX_BYTES) {
      const gone = pieces.shift();
      size -= gone.length;
      for (let at = gone.indexOf(10); at >= 0; at = gone.indexOf(10, at + 1)) skipped++;
    }
  }
  const blob = new Blob(pieces);
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const text = decoded(bytes);
  return logOf(text, file.name, skipped || bytes[0] !== 0xff ? blob : null, skipped);
}

function decoded(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes.subarray(0, 8000).includes(0)) throw new Error("binary");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const loose = new TextDecoder("utf-8").decode(bytes); // a log that was cut somewhere has a few broken characters
    return loose.split("\ufffd").length < 100 ? loose : new TextDecoder("gb18030").decode(bytes);
  }
}

// What is sent: the bytes, packed where that is worth it. Of a log that is too long even so, the end; `skipped` lines
// are left out before it.
export async function packed(log) {
  const blob = log.blob ?? (await blobOf(log.text));
  if (blob.size < PACKED_FROM || !globalThis.CompressionStream) return { ...ending(log, blob, MAX_SENT), packed: false };
  for (let most = MAX_BYTES; ; most = Math.floor(most / 2)) {
    const part = ending(log, blob, most);
    const body = await gzip(part.body);
    if (body.size <= MAX_SENT || most < MAX_SENT) return { ...part, body, packed: true };
  }
}

// A browser packs on the thread of the page: it is given one piece at a time, and reading the next is a pause.
async function gzip(blob) {
  const stream = new CompressionStream("gzip");
  const whole = new Response(stream.readable).blob();
  const writer = stream.writable.getWriter();
  for (let at = 0; at < blob.size; at += PIECE) await writer.write(await blob.slice(at, at + PIECE).arrayBuffer());
  await writer.close();
  return whole;
}

function ending(log, blob, most) {
  if (blob.size <= most) return { body: blob, skipped: 0 };
  const share = most / blob.size; // lines of one log are about as long, and in bytes as in characters
  const skipped = log.starts.findIndex((start) => start >= log.text.length * (1 - share));
  return { body: new Blob([log.text.slice(log.starts[skipped])]), skipped };
}

// One line without its end, the last part of a progress bar only, as a terminal shows it. `number` counts from 1.
export function lineOf(log, number) {
  const at = number - 1 - log.skipped;
  const line = log.text.slice(log.starts[at], log.starts[at + 1] ?? log.text.length).replace(/[\r\n]+$/, "");
  return line.slice(line.lastIndexOf("\r") + 1).slice(0, MAX_COLUMNS);
}

// The part of a log for the box: its `text`, the numbers of its first and last line, and where line `number` stands in it.
export function partOf(log, number = 0) {
  const end = log.skipped + log.starts.length;
  const middle = number || end;
  const first = Math.max(log.skipped + 1, Math.min(middle, end - AROUND) - AROUND);
  const last = Math.min(end, first + 2 * AROUND);
  const lines = [];
  for (let one = first; one <= last; one++) lines.push(lineOf(log, one));
  const from = lines.slice(0, middle - first).reduce((sum, line) => sum + line.length + 1, 0);
  return { text: lines.join("\n"), first, last, from, to: from + (lines[middle - first]?.length ?? 0) };
}

// The number of the line of a question in which a matched text stands; 0 when the question has one line or none has it.
export function matchedLine(text, matched) {
  const lines = text.trimEnd().split("\n").map((line) => line.toLowerCase());
  if (lines.length < 2) return 0;
  for (const one of matched) {
    const at = lines.findIndex((line) => line.includes(one.toLowerCase()));
    if (at >= 0) return at + 1;
  }
  return 0;
}
