import { useCallback, useEffect } from "react";

import { getReasons } from "../api/client";
import type { ReasonCode } from "../api/types";
import { toAll } from "../components/crumbs";
import { Header } from "../components/Header";
import { Waiting } from "../components/Loading";
import { useLoaded } from "../useLoaded";

const TITLE = "Reasons";

/** All reason codes, with what to do about each. Other pages and the log link to one of them. */
export function ReasonsPage({ base }: { base: string }) {
  const load = useCallback((signal: AbortSignal) => getReasons(base, signal), [base]);
  const [loaded, again] = useLoaded(load);
  const crumbs = toAll(base);
  if (loaded.status !== "done") {
    const error = loaded.status === "failed" ? loaded.error : null;
    return <Waiting title={TITLE} crumbs={crumbs} what="the reasons" error={error} again={again} />;
  }
  return (
    <>
      <Header title={TITLE} crumbs={crumbs}>
        <p className="note">
          Each scan of a partitioned table has one of these codes. It says why the scan is pruned or
          not.
        </p>
      </Header>
      <main>
        <Reasons reasons={loaded.value} />
      </main>
    </>
  );
}

function Reasons({ reasons }: { reasons: ReasonCode[] }) {
  useEffect(() => {
    // the browser has looked for the part that the address names before it was there
    document.getElementById(window.location.hash.slice(1))?.scrollIntoView();
  }, []);
  const named = window.location.hash.slice(1);
  return (
    <dl className="reasons">
      {reasons.map(({ code, sentence, advice }) => (
        <div key={code} id={code} className={code === named ? "card named" : "card"}>
          <dt>
            <code>{code}</code>
          </dt>
          <dd>{sentence}.</dd>
          {advice !== null && (
            <dd>
              <strong>To do:</strong> {advice}
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}
