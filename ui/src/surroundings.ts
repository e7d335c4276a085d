import { createContext, useContext } from "react";

/** Where the page runs: below Airflow's address, or in a file of its own (no base). */
export interface Surroundings {
  base: string | null;
}

export const SurroundingsContext = createContext<Surroundings>({ base: null });

export function useBase(): string | null {
  return useContext(SurroundingsContext).base;
}
