import { localTime } from "../format";

export function Time({ iso }: { iso: string | null }) {
  if (iso === null) return <>not known</>;
  return (
    <time dateTime={iso} title={iso}>
      {localTime(iso)}
    </time>
  );
}
