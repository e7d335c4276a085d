import { defineConfig } from "vite";

// One script and one style sheet with fixed names, which the API server serves under a strict
// content security policy. LICENSES.md has the licences of the bundled libraries.
export default defineConfig({
  base: "./",
  server: { proxy: { "/base/hive_opt/api": "http://127.0.0.1:8910" } },
  build: {
    outDir: "../airflow_hive_opt/pages/static",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "LICENSES.md" },
    chunkSizeWarningLimit: 1500,
    rolldownOptions: {
      input: "src/main.tsx",
      // "use client" is for servers that render React.
      onLog(level, log, report) {
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") report(level, log);
      },
      output: {
        codeSplitting: false,
        entryFileNames: "pages.js",
        assetFileNames: "pages[extname]",
      },
    },
  },
});
