import { localTime } from "../format";

export function Time({ iso }: { iso: string }) {
  return (
    <time dateTime={iso} title={iso}>
      {localTime(iso)}
    </time>
  );
}
