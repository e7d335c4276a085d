import { useCallback, useEffect, useState } from "react";

export type Loaded<T> =
  | { status: "loading"; last: T | null }
  | { status: "failed"; error: Error }
  | { status: "done"; value: T };

/** Loads a value; `load` must keep its identity while its inputs are the same. */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
): [loaded: Loaded<T>, again: () => void] {
  const [loaded, setLoaded] = useState<Loaded<T>>({ status: "loading", last: null });
  const [attempt, setAttempt] = useState(0);
  const again = useCallback(() => setAttempt((number) => number + 1), []);

  useEffect(() => {
    const controller = new AbortController();
    setLoaded((before) => ({
      status: "loading",
      last: before.status === "done" ? before.value : null,
    }));
    load(controller.signal).then(
      (value) => {
        if (!controller.signal.aborted) setLoaded({ status: "done", value });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setLoaded({
          status: "failed",
          error: error instanceof Error ? error : new Error(String(error)),
        });
      },
    );
    return () => controller.abort();
  }, [load, attempt]);

  return [loaded, again];
}
