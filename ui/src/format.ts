const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/** 1824 is "1,824". */
export function count(value: number): string {
  return WHOLE.format(value);
}

/** "1 partition", "2 partitions". */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** 12_400_000 is "12.4 MB". */
export function bytes(value: number): string {
  let amount = Math.abs(value);
  let unit = 0;
  while (amount >= 999.95 && unit < UNITS.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 99.95 ? 0 : 1;
  return `${value < 0 ? "-" : ""}${amount.toFixed(digits)} ${UNITS[unit]}`;
}

/** 0.351 is "0.35 s", 3.21 is "3.2 s", 125 is "2 min 5 s", 3720 is "1 h 2 min". */
export function seconds(value: number): string {
  if (value > 0 && value < 0.005) return "< 0.01 s";
  if (value < 0.995) return `${value.toFixed(2)} s`;
  if (value < 59.95) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return joined([Math.floor(whole / 60), "min"], [whole % 60, "s"]);
  const minutes = Math.round(value / 60);
  return joined([Math.floor(minutes / 60), "h"], [minutes % 60, "min"]);
}

/** Seconds on the axis of a chart, without digits that its round values do not need. */
export function axisSeconds(value: number): string {
  if (value >= 600) return `${count(value / 60)} min`;
  return `${value >= 10 || value === 0 ? count(value) : Number(value.toFixed(2))} s`;
}

/** Bytes on the axis of a chart: "20 GB". */
export function axisBytes(value: number): string {
  return bytes(value).replace(".0 ", " ");
}

function joined(...parts: [number, string][]): string {
  return parts
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${count(amount)} ${unit}`)
    .join(" ");
}

/** The pruned part of all, as "98.4 %". Never rounds up to 100 % or down to 0 %. */
export function prunedPercent(kept: number, total: number): string {
  if (total <= 0) return "0 %";
  const part = ((total - kept) / total) * 100;
  if (part <= 0) return "0 %";
  if (part >= 100) return "100 %";
  return `${Math.min(99.9, Math.max(0.1, part)).toFixed(1)} %`;
}

/** The time in the viewer's zone: "2026-11-24 08:40:12". */
export function localTime(iso: string): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  const two = (value: number) => String(value).padStart(2, "0");
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** For the axis of a chart: "11-24 08:40", or of another year than this one "2000-11-24". */
export function shortTime(iso: string, now = new Date()): string {
  const text = localTime(iso);
  return text.startsWith(String(now.getFullYear())) ? text.slice(5, 16) : text.slice(0, 10);
}

export function ifKnown<T>(value: T | null, format: (value: T) => string): string | null {
  return value === null ? null : format(value);
}

/** "≈ 1.2 GB" of an estimate. */
export function estimatedBytes(value: number, estimated: boolean): string {
  return estimated ? `≈ ${bytes(value)}` : bytes(value);
}
