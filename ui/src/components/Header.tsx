import { useEffect, type ReactNode } from "react";

import { isInTab, type Tab } from "../airflowLinks";

export interface Crumb {
  label: string;
  href: string | null;
}

interface Props {
  title: string;
  crumbs?: Crumb[];
  /** the tab of Airflow's UI whose own header says the same */
  tab?: Tab;
  children?: ReactNode;
}

/** The title and the way to it; in Airflow's tab only screen readers have it, as Airflow says it too. */
export function Header({ title, crumbs = [], tab, children }: Props) {
  useEffect(() => {
    document.title = `${title} - partition pruning`;
  }, [title]);
  if (tab !== undefined && isInTab(tab)) return <h1 className="hidden">{title}</h1>;
  return (
    <header className="header">
      {crumbs.length > 0 && (
        <nav aria-label="Breadcrumb">
          <ol className="crumbs">
            {crumbs.map((crumb, index) => (
              <li key={index}>
                {crumb.href === null ? crumb.label : <a href={crumb.href}>{crumb.label}</a>}
              </li>
            ))}
          </ol>
        </nav>
      )}
      <h1>{title}</h1>
      {children}
    </header>
  );
}
