import { pagePath } from "../router";
import { useBase } from "../surroundings";

/** What to do about a reason, with a link to all reasons, which a page in a file does not have. */
export function Advice({ code, advice }: { code: string; advice: string }) {
  const base = useBase();
  return (
    <span className="advice">
      <strong>To do:</strong> {advice}{" "}
      {base !== null && (
        <a href={pagePath.reason(base, code)}>
          More<span className="hidden"> about {code}</span>
        </a>
      )}
    </span>
  );
}
