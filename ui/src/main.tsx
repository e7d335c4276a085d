import "@xyflow/react/dist/base.css";
import "./styles/index.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";
import type { FileData } from "./api/types";
import { followColourMode } from "./colourMode";
import { basePath } from "./router";

/** The data of a self-contained file; null on Airflow's server. */
function dataInFile(): FileData | null {
  const element = document.getElementById("data");
  if (element?.getAttribute("type") !== "application/json") return null;
  return JSON.parse(element.textContent ?? "null") as FileData | null;
}

const root = document.getElementById("root");
if (root !== null) {
  followColourMode();
  const base = root.dataset["base"];
  createRoot(root).render(
    <StrictMode>
      <App
        base={base === undefined ? null : basePath(base, window.location.href)}
        file={dataInFile()}
        message={root.dataset["message"] ?? null}
      />
    </StrictMode>,
  );
}
