/** Airflow's task state; the colour only repeats the word. */
export function State({ state }: { state: string | null }) {
  const name = state ?? "no status";
  return (
    <span className="state" data-state={state ?? "none"}>
      {name.replaceAll("_", " ")}
    </span>
  );
}
