import { useCallback, useEffect, useId, useState } from "react";

import type { Downloads, PartitionReader } from "../api/partitions";
import type { PartitionPage, Scan } from "../api/types";
import { bytes, count, counted, orUnknown } from "../format";
import { useLoaded } from "../useLoaded";
import { DownloadLink } from "./AirflowLink";
import { Failed, Loading } from "./Loading";
import { Table } from "./Table";

const PAGE = 100;
const PAUSE = 300;

interface Props {
  scan: Scan;
  /** the scan's number among the pruned scans, from 0 */
  number: number;
  reader: PartitionReader;
}

/** The partition list of one pruned scan: pages of 100, search and downloads. */
export function Partitions({ scan, number, reader }: Props) {
  const [typed, setTyped] = useState("");
  const [{ search, offset }, setWanted] = useState({ search: "", offset: 0 });
  const id = useId();

  useEffect(() => {
    const timer = setTimeout(() => {
      const next = typed.trim();
      setWanted((before) => (before.search === next ? before : { search: next, offset: 0 }));
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);

  const load = useCallback(
    (signal: AbortSignal) => reader.page(number, search, offset, PAGE, signal),
    [reader, number, search, offset],
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
        <DownloadLinks scan={scan} number={number} reader={reader} />
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

function DownloadLinks({ scan, number, reader }: Props) {
  const [links, setLinks] = useState<Downloads | null>(null);
  useEffect(() => {
    const made = reader.downloads(number);
    setLinks(made);
    return () => made.release();
  }, [reader, number]);
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
    <Table
      caption={`Kept partitions of ${page.table} (${page.alias})`}
      head={[
        ...page.columns.map((label) => ({ label })),
        { label: "Rows", numeric: true },
        { label: "Size", numeric: true },
        { label: "Location" },
      ]}
    >
      {page.partitions.map((partition, index) => (
        <tr key={`${index} ${partition.name}`}>
          {partition.values.map((value, column) => (
            <td key={column} className="value">
              {value ?? <span className="null">NULL</span>}
            </td>
          ))}
          <td className="numeric">{orUnknown(partition.rows, count)}</td>
          <td className="numeric">{orUnknown(partition.bytes, bytes)}</td>
          <td className="location">{partition.location ?? "not known"}</td>
        </tr>
      ))}
    </Table>
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
