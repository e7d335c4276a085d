import { useMemo, type ReactNode } from "react";

import { fromFile } from "./api/partitions";
import type { FileData } from "./api/types";
import { toAll } from "./components/crumbs";
import { Guard } from "./components/Guard";
import { Header } from "./components/Header";
import { Message } from "./components/Message";
import { HistoryPage } from "./pages/HistoryPage";
import { OverviewPage } from "./pages/OverviewPage";
import { RunPage, RunView } from "./pages/RunPage";
import { pageOf, type Page } from "./router";
import { SurroundingsContext } from "./surroundings";

interface Props {
  base: string | null;
  file: FileData | null;
}

export function App({ base, file }: Props) {
  const surroundings = useMemo(() => ({ base: file === null ? base : null }), [base, file]);
  return (
    <SurroundingsContext value={surroundings}>
      <Guard>{file !== null ? <FileView file={file} /> : <ServerView base={base ?? ""} />}</Guard>
    </SurroundingsContext>
  );
}

function FileView({ file }: { file: FileData }) {
  const reader = useMemo(() => fromFile(file.partitions), [file]);
  return <RunView instance={file.data} reader={reader} hasRun={file.kind === "instance"} />;
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
