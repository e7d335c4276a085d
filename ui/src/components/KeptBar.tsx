interface Props {
  kept: number | null;
  total: number | null;
}

/** Kept partitions as a part of all. The text beside it says the same. */
export function KeptBar({ kept, total }: Props) {
  const whole = kept === null || total === null;
  const part = whole ? 1 : total === 0 ? 0 : Math.min(1, kept / total);
  return (
    <span className={whole ? "bar bar-whole" : "bar"} aria-hidden="true">
      {part > 0 && <span className="bar-kept" style={{ width: `${part * 100}%` }} />}
    </span>
  );
}
