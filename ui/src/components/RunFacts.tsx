import { taskInstancePath, webAddress } from "../airflowLinks";
import type { Instance } from "../api/types";
import { bytes, seconds } from "../format";
import { useBase } from "../surroundings";
import { AirflowLink, OuterLink } from "./AirflowLink";
import { Facts } from "./Facts";
import { State } from "./State";
import { Time } from "./Time";

/** Airflow's facts of the run, with a link to Airflow's own page. Airflow's tabs show the same. */
export function RunFacts({ instance }: { instance: Instance }) {
  const base = useBase();
  const id = {
    dagId: instance.dag_id,
    runId: instance.run_id,
    taskId: instance.task_id,
    mapIndex: instance.map_index,
  };
  return (
    <>
      <Facts
        facts={[
          ["Run", <span key="run">{instance.run_id}</span>],
          ["Map index", instance.map_index >= 0 && String(instance.map_index)],
          ["State", <State key="state" state={instance.state} />],
          ["Try", instance.try_number !== null && String(instance.try_number)],
          ["Logical date", instance.logical_date && <Time iso={instance.logical_date} />],
          ["Started", instance.start_date && <Time iso={instance.start_date} />],
          ["Duration", instance.duration !== null && seconds(instance.duration)],
        ]}
      />
      {base !== null && (
        <p>
          <AirflowLink href={taskInstancePath(base, id)}>Task instance in Airflow</AirflowLink>
        </p>
      )}
    </>
  );
}

/** The facts of the run's Spark; nothing if none is known. */
export function SparkFacts({ instance }: { instance: Instance }) {
  const spark = webAddress(instance.spark_ui_url);
  const { application_id: application, driver_peak_heap: heap } = instance;
  if (application === null && heap === null && spark === null) return null;
  return (
    <Facts
      facts={[
        ["Application", application],
        ["Driver's peak heap", heap !== null && bytes(heap)],
        ["Spark's own page", spark !== null && <OuterLink href={spark}>Spark UI</OuterLink>],
      ]}
    />
  );
}
