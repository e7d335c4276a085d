import { useMemo, type ReactNode } from "react";

import { fromFile } from "./api/partitions";
import type { FileData } from "./api/types";
import { toAll } from "./components/crumbs";
import { Guard } from "./components/Guard";
import { Header } from "./components/Header";
import { Message } from "./components/Message";
import { HistoryPage } from "./pages/HistoryPage";
import { OverviewPage } from "./pages/OverviewPage";
import { ReasonsPage } from "./pages/ReasonsPage";
import { RunPage, RunView } from "./pages/RunPage";
import { instanceOfLink, pageOf, pagePath, type Page } from "./router";
import { SurroundingsContext } from "./surroundings";

interface Props {
  base: string | null;
  file: FileData | null;
  /** why the server has nothing to show */
  message: string | null;
}

export function App({ base, file, message }: Props) {
  const surroundings = useMemo(() => ({ base: file === null ? base : null }), [base, file]);
  return (
    <SurroundingsContext value={surroundings}>
      <Guard>
        {file !== null ? (
          <FileView file={file} />
        ) : message !== null ? (
          <Refusal base={base ?? ""} message={message} />
        ) : (
          <ServerView base={base ?? ""} />
        )}
      </Guard>
    </SurroundingsContext>
  );
}

function FileView({ file }: { file: FileData }) {
  const reader = useMemo(() => fromFile(file.partitions), [file]);
  return <RunView instance={file.data} reader={reader} hasRun={file.kind === "instance"} />;
}

/** What a link says that finds nothing, with the way to the run's page. */
function Refusal({ base, message }: { base: string; message: string }) {
  const { pathname, search } = window.location;
  const id = instanceOfLink(base, pathname, search);
  return (
    <>
      <Header title="Nothing to show" crumbs={toAll(base)} />
      <main>
        <Message kind="info">
          <p>{message}</p>
        </Message>
        {id !== null && <a href={pagePath.run(base, id)}>The page of this run</a>}
      </main>
    </>
  );
}

function ServerView({ base }: { base: string }) {
  const page = pageOf(base, window.location.pathname, window.location.search);
  return viewOf(base, page);
}

function viewOf(base: string, page: Page): ReactNode {
  switch (page.kind) {
    case "overview":
      return <OverviewPage base={base} dagId={null} />;
    case "dag":
      return <OverviewPage base={base} dagId={page.dagId} />;
    case "history":
      return <HistoryPage base={base} dagId={page.dagId} taskId={page.taskId} />;
    case "run":
      return <RunPage base={base} id={page.id} />;
    case "reasons":
      return <ReasonsPage base={base} />;
    case "unknown":
      return (
        <>
          <Header title="Page not found" crumbs={toAll(base)} />
          <main>
            <Message kind="error">There is no page at this address.</Message>
          </main>
        </>
      );
  }
}
