import { useState } from "react";

import type { PartitionReader } from "../api/partitions";
import type { Instance, Scan } from "../api/types";
import { count } from "../format";
import { isNamedBy, isPruned } from "../statement";
import { Message } from "./Message";
import { Partitions } from "./Partitions";
import { Section } from "./Section";

interface Props {
  instance: Instance;
  reader: PartitionReader;
}

/** The partition lists of the pruned scans, or why there are none. */
export function PartitionLists({ instance, reader }: Props) {
  const pruned = instance.scans.filter(isPruned);
  if (pruned.length === 0) return null;
  return (
    <Section title="Partitions">
      {instance.descriptor === "deleted" && (
        <Message kind="info">
          The partition lists of this run are not there: they were deleted, or{" "}
          <code>[hive_opt] descriptor_path</code> is a folder of another machine. The figures above
          remain.
        </Message>
      )}
      {instance.descriptor === "unreadable" && (
        <Message kind="info">
          The API server can't read the partition lists: they were changed, another version of the
          package wrote them, or the storage does not answer. The server's log says more.
        </Message>
      )}
      {instance.descriptor === "outside" && (
        <Message kind="info">
          The partition lists are not below <code>[hive_opt] descriptor_path</code> of the API
          server, so this page does not show them.
        </Message>
      )}
      {instance.descriptor === "there" &&
        pruned.map((scan, number) => (
          <List key={number} scan={scan} number={number} reader={reader} open={number === 0} />
        ))}
    </Section>
  );
}

interface ListProps {
  scan: Scan;
  number: number;
  reader: PartitionReader;
  open: boolean;
}

/** A list is loaded when it is opened for the first time. */
function List({ scan, number, reader, open }: ListProps) {
  const [opened, setOpened] = useState(open);
  return (
    <details
      className="card"
      open={open}
      onToggle={(event) => {
        if (event.currentTarget.open) setOpened(true);
      }}
    >
      <summary>
        {scan.table}
        {!isNamedBy(scan) && ` (${scan.alias})`}: {count(scan.kept ?? 0)} kept
      </summary>
      {opened && <Partitions scan={scan} number={number} reader={reader} />}
    </details>
  );
}
