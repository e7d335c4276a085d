import { useEffect, type ReactNode } from "react";

export interface Crumb {
  label: string;
  href: string | null;
}

interface Props {
  title: string;
  crumbs?: Crumb[];
  children?: ReactNode;
}

export function Header({ title, crumbs = [], children }: Props) {
  useEffect(() => {
    document.title = `${title} - partition pruning`;
  }, [title]);
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
