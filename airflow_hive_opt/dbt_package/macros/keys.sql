{#-- The keys of a source as literals, '1, 2', and a condition on the target that only rows with these
  keys fulfil. No literals mean that the source has no key; none, that the MERGE can't be pruned. The
  log then says why.

  Strings are compared one by one: Iceberg 1.11 fails on a list of strings if a partition is NULL. --#}
{% macro _keys(target, source, unique_key, column) %}
  {%- set unique = [unique_key] if unique_key is string else (unique_key or []) -%}
  {%- if column is not string or column | lower not in unique | map('lower') -%}
    {%- do exceptions.raise_compiler_error(
          "prune_by must be one column of unique_key, which is " ~ unique ~ ", and is " ~ column) -%}
  {%- endif -%}
  {%- set types = [] -%}
  {%- for found in adapter.get_columns_in_relation(target) if found.name | lower == column | lower -%}
    {%- do types.append(found.dtype) -%}
  {%- endfor -%}
  {%- set type = types | first | default('missing') -%}
  {%- set forms = airflow_hive_opt._forms() -%}
  {%- if type not in forms -%}
    {{ return(airflow_hive_opt._not_pruned(target, column, "a column of the type " ~ type ~ " can't be pruned by")) }}
  {%- endif -%}
  {%- set limit = (config.get('meta') or {}).get('prune_keys', 1000) -%}
  {%- set name, form = adapter.quote(column), forms[type] -%}
  {%- set dest = "DBT_INTERNAL_DEST." ~ name -%}
  {%- set found = run_query(
        "select concat('(', concat_ws(', ', sort_array(collect_list(" ~ form['literal'] ~ "))), ')') as literals, "
        ~ "count(*) as total, count_if(" ~ form['is_plain'] ~ ") as plain, max(type) as type, "
        ~ "concat('(', concat_ws(' or ', sort_array(collect_list(concat('" ~ dest ~ " = ', " ~ form['literal'] ~ ")))), ')') as equal from ("
        ~ "select distinct cast(" ~ name ~ " as string) as text, typeof(" ~ name ~ ") as type from " ~ source
        ~ " where " ~ name ~ " is not null limit " ~ (limit + 1) ~ ")") -%}
  {%- set row = found.rows[0] -%}
  {%- if row[1] == 0 -%}
    {{ return({'literals': '', 'condition': '1 = 0'}) }}
  {%- elif row[1] > limit -%}
    {{ return(airflow_hive_opt._not_pruned(target, column, "its source has more than " ~ limit ~ " keys (prune_keys)")) }}
  {%- elif row[3] != type -%}
    {{ return(airflow_hive_opt._not_pruned(target, column, "it is " ~ row[3] ~ " in the source and " ~ type ~ " in the table")) }}
  {%- elif row[2] != row[1] -%}
    {{ return(airflow_hive_opt._not_pruned(target, column, "a key has characters that can't be in a literal here")) }}
  {%- endif -%}
  {{ return({
      'literals': row[0][1:-1],
      'condition': row[4] if type == 'string' else dest ~ ' in ' ~ row[0]}) }}
{% endmacro %}


{#-- SQL of a key's text: its literal, and whether the text can be in one whatever the session's
  settings are. Backslashes, quotes and variables are read in several ways. --#}
{% macro _forms() %}
  {%- set number = {'literal': "text", 'is_plain': "text rlike '^-?[0-9]+$'"} -%}
  {{ return({
      'tinyint': number, 'smallint': number, 'int': number, 'bigint': number,
      'date': {
          'literal': "concat('date', chr(39), text, chr(39))",
          'is_plain': "text rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'"},
      'string': {
          'literal': "concat(chr(39), text, chr(39))",
          'is_plain': "instr(text, chr(36)) + instr(text, chr(39)) + instr(text, chr(92)) = 0"},
  }) }}
{% endmacro %}


{% macro _not_pruned(target, column, why) %}
  {%- do log("The MERGE into " ~ target ~ " is not pruned by " ~ column ~ ": " ~ why, info=true) -%}
  {{ return(none) }}
{% endmacro %}
