"""What a person sees in Airflow's own pages, in a real browser."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

TASK = "sales_by_category"


def test_the_links_of_a_pruned_run_lead_to_its_pages(page, airflow, cluster_sales):
    task = f"{airflow.address}/dags/cluster_sales/runs/{quote(cluster_sales)}/tasks/{TASK}/details"
    page.goto(task)
    page.get_by_role("link", name="Explain pruning").click()
    page.wait_for_url("**/hive_opt/dags/cluster_sales/explain?*")
    text = page.locator("body").inner_text()
    assert text.startswith("kept 30 of 366 partitions (91.8 % pruned)")
    assert "ss (default.store_sales): PRUNED" in text
    page.goto(task)
    page.get_by_role("link", name="Partition descriptor").click()
    page.wait_for_url("**/hive_opt/dags/cluster_sales/descriptor?*")
    (target,) = json.loads(page.locator("body").inner_text())["targets"]
    assert len(target["partitions"]) == 30
    page.goto(task)
    spark = page.get_by_role("link", name="Spark UI").get_attribute("href")
    assert re.search(r"/app/\?appId=app-\d+-\d+$", spark)


def test_the_trigger_form_asks_for_region_and_month(page, airflow):
    page.goto(f"{airflow.address}/dags/region_sales")
    page.get_by_role("button", name="Trigger").first.click()
    assert page.locator("[name=element_region]").input_value() == "TN"
    assert page.locator("[name=element_month]").input_value() == "11"
    assert page.get_by_text("The stores' state.").is_visible()
