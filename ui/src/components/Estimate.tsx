import { estimatedBytes } from "../format";

const HOW = "Estimated: each partition counts as large as those that were read, on average.";

/** Bytes, marked if they are an estimate. */
export function Estimate({ bytes, estimated }: { bytes: number; estimated: boolean }) {
  const text = estimatedBytes(bytes, estimated);
  return estimated ? <span title={HOW}>{text}</span> : <>{text}</>;
}
