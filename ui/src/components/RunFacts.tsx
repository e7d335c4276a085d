import { taskInstancePath, webAddress } from "../airflowLinks";
import type { Instance } from "../api/types";
import { bytes, seconds } from "../format";
import { useBase } from "../surroundings";
import { AirflowLink, OuterLink } from "./AirflowLink";
import { Facts } from "./Facts";
import { State } from "./State";
import { Time } from "./Time";

/** Airflow's facts of the run, with links to Airflow's and Spark's own pages. */
export function RunFacts({ instance }: { instance: Instance }) {
  const base = useBase();
  const spark = webAddress(instance.spark_ui_url);
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
          [
            "Driver's peak heap",
            instance.driver_peak_heap !== null && bytes(instance.driver_peak_heap),
          ],
          ["Application", instance.application_id],
        ]}
      />
      <p className="links">
        {base !== null && (
          <AirflowLink href={taskInstancePath(base, id)}>Task instance in Airflow</AirflowLink>
        )}
        {spark !== null && <OuterLink href={spark}>Spark UI</OuterLink>}
      </p>
    </>
  );
}
