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
      {instance.descriptor !== "there" && (
        <Message kind="info">
          <p>{instance.descriptor_note}.</p>
        </Message>
      )}
      {instance.descriptor === "there" &&
        pruned.map((scan, number) => (
          <List key={number} scan={scan} reader={reader} open={number === 0} />
        ))}
    </Section>
  );
}

interface ListProps {
  scan: Scan;
  reader: PartitionReader;
  open: boolean;
}

/** A list is loaded when it is opened for the first time. */
function List({ scan, reader, open }: ListProps) {
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
        {!isNamedBy(scan) && ` (${scan.scan})`}: {count(scan.kept ?? 0)} kept
      </summary>
      {opened && <Partitions scan={scan} reader={reader} />}
    </details>
  );
}
