import { useCallback, useEffect, useId, useState } from "react";

import type { Downloads, PartitionReader } from "../api/partitions";
import type { Partition, PartitionPage, Scan } from "../api/types";
import { bytes, count, counted, ifKnown } from "../format";
import { startOf } from "../statement";
import { useLoaded } from "../useLoaded";
import { DownloadLink } from "./AirflowLink";
import { DataTable } from "./DataTable";
import { Failed, Loading } from "./Loading";

const PAGE = 100;
const PAUSE = 300;

interface Props {
  scan: Scan;
  reader: PartitionReader;
}

/** The partition list of one pruned scan: pages of 100, search and downloads. */
export function Partitions({ scan, reader }: Props) {
  const [typed, setTyped] = useState("");
  const [{ search, offset }, setWanted] = useState({ search: "", offset: 0 });
  const id = useId();
  const start = startOf(scan);

  useEffect(() => {
    const timer = setTimeout(() => {
      const next = typed.trim();
      setWanted((before) => (before.search === next ? before : { search: next, offset: 0 }));
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);

  const load = useCallback(
    (signal: AbortSignal) => reader.page(start, search, offset, PAGE, signal),
    [reader, start, search, offset],
  );
  const [loaded, again] = useLoaded(load);
  const page = loaded.status === "done" ? loaded.value : loaded.status === "loading" ? loaded.last : null;

  return (
    <div className="partitions">
      <div className="tools">
        <label htmlFor={id}>Search partitions</label>
        <input
          id={id}
          type="search"
          value={typed}
          placeholder="part of a name"
          onChange={(event) => setTyped(event.target.value)}
        />
        <DownloadLinks scan={scan} reader={reader} />
      </div>
      {loaded.status === "failed" && <Failed error={loaded.error} again={again} />}
      {page === null && loaded.status === "loading" && <Loading what="partitions" />}
      {page !== null && (
        <div aria-busy={loaded.status === "loading"}>
          <Rows page={page} />
          <Pager page={page} offset={offset} turn={(to) => setWanted({ search, offset: to })} />
        </div>
      )}
    </div>
  );
}

function DownloadLinks({ scan, reader }: Props) {
  const start = startOf(scan);
  const [links, setLinks] = useState<Downloads | null>(null);
  useEffect(() => {
    const made = reader.downloads(start);
    setLinks(made);
    return () => made.release();
  }, [reader, start]);
  if (links === null) return null;
  const name = `${scan.table}-partitions`.replace(/[^\w.-]+/g, "_");
  return (
    <span className="downloads">
      <DownloadLink href={links.csv} name={`${name}.csv`}>
        CSV<span className="hidden"> of all partitions of {scan.table}</span>
      </DownloadLink>
      <DownloadLink href={links.json} name={`${name}.json`}>
        JSON<span className="hidden"> of all partitions of {scan.table}</span>
      </DownloadLink>
    </span>
  );
}

function Rows({ page }: { page: PartitionPage }) {
  if (page.partitions.length === 0) {
    return <p className="muted">{page.total === 0 ? "The list is empty." : "No partition matches."}</p>;
  }
  return (
    <DataTable
      caption={`Kept partitions of ${page.table} (${page.scan})`}
      rows={page.partitions}
      keyOf={(partition, index) => `${index} ${partition.name}`}
      columns={[
        ...page.columns.map((label, number) => ({
          label,
          className: "value",
          cell: ({ values }: Partition) => values[number] ?? <span className="null">NULL</span>,
        })),
        { label: "Rows", numeric: true, cell: ({ rows }) => ifKnown(rows, count) },
        { label: "Size", numeric: true, cell: (partition) => ifKnown(partition.bytes, bytes) },
        { label: "Location", className: "location", cell: ({ location }) => location },
      ]}
    />
  );
}

interface PagerProps {
  page: PartitionPage;
  offset: number;
  turn: (offset: number) => void;
}

function Pager({ page, offset, turn }: PagerProps) {
  const last = Math.min(offset + page.partitions.length, page.found);
  const all = page.found === page.total ? "" : ` (of ${count(page.total)} in the list)`;
  return (
    <div className="pager">
      <span role="status">
        {page.found === 0 ? "0" : `${count(offset + 1)} to ${count(last)}`} of{" "}
        {counted(page.found, "partition")}
        {all}
      </span>
      {page.found > PAGE && (
        <>
          <button type="button" disabled={offset === 0} onClick={() => turn(Math.max(0, offset - PAGE))}>
            Previous
          </button>
          <button type="button" disabled={last >= page.found} onClick={() => turn(offset + PAGE)}>
            Next
          </button>
        </>
      )}
    </div>
  );
}
