{#-- MERGE of an incremental model that reads only what the keys of its source call for.

  A model opts in by its meta:

      config(incremental_strategy='merge', unique_key=['id', 'day'], meta={'prune_by': 'day'})

  Before the MERGE, a query reads the distinct values of the column from the source. They become a
  condition on the target, by which Delta and Iceberg leave files out:

      merge into sales as DBT_INTERNAL_DEST using sales__dbt_tmp_keys as DBT_INTERNAL_SOURCE
      on DBT_INTERNAL_DEST.day in (date'2026-11-26') and DBT_INTERNAL_SOURCE.id = ...

  The column is one of unique_key. Rows with another value therefore match nothing, and the condition
  changes no row. The source is read again by the MERGE. If it then has a key that the list does not
  have, the statement fails, because that row could be inserted twice.

  Other models get the MERGE of dbt-spark, and models of dbt-databricks that of dbt-databricks.
--#}
{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  {%- if adapter.type() != 'spark' -%}
    {%- do exceptions.raise_compiler_error(
          "the MERGE of airflow_hive_opt is for dbt-spark, and this is dbt-" ~ adapter.type()
          ~ ": take the package out of dispatch in dbt_project.yml") -%}
  {%- endif -%}
  {%- set column = (config.get('meta') or {}).get('prune_by') -%}
  {%- set keys = airflow_hive_opt._keys(target, source, unique_key, column) if column else none -%}
  {%- if keys is none -%}
    {{ dbt.spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) }}
  {%- else -%}
    {%- set guarded = source.incorporate(path={'identifier': source.identifier ~ '_keys'}).include(database=false, schema=false) -%}
    {%- set predicates = incremental_predicates or [] -%}
    {%- if predicates is string -%}{%- set predicates = [predicates] -%}{%- endif -%}
    {%- do run_query(airflow_hive_opt._guarded(guarded, source, column, keys)) -%}
    {{ dbt.spark__get_merge_sql(target, guarded, unique_key, dest_columns, predicates + [keys['condition']]) }}
  {%- endif -%}
{% endmacro %}


{#-- dbt-databricks looks for the macros of dbt-spark too, and this package comes before its own. --#}
{% macro databricks__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  {{ dbt.databricks__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) }}
{% endmacro %}


{#-- The source, which fails on a row whose key is not in the list. --#}
{% macro _guarded(view, source, column, keys) -%}
  {%- set name = adapter.quote(column) -%}
  create or replace temporary view {{ view }} as
  select * from {{ source }}
  where case
    when {{ name }} is null{% if keys['literals'] %} or {{ name }} in ({{ keys['literals'] }}){% endif %} then true
    else cast(raise_error('the source of the MERGE has changed while its keys were read: run the model again') as boolean)
  end
{%- endmacro %}
