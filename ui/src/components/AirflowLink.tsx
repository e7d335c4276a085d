import type { MouseEvent, ReactNode } from "react";

import { clickInAirflow, openInAirflow } from "../airflowLinks";

/** A link that the user opens with the left button and no key; others stay with the browser. */
function isPlain(event: MouseEvent): boolean {
  return event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
}

interface Props {
  href: string;
  children: ReactNode;
}

/** A link to a page of Airflow itself. */
export function AirflowLink({ href, children }: Props) {
  return (
    <a
      href={href}
      onClick={(event) => {
        if (isPlain(event) && openInAirflow(href)) event.preventDefault();
      }}
    >
      {children}
    </a>
  );
}

/** A link to another server, in a window of its own. */
export function OuterLink({ href, children }: Props) {
  return (
    <a
      href={href}
      target="_blank"
      rel="noopener noreferrer"
      onClick={(event) => {
        if (isPlain(event) && clickInAirflow({ href, target: "_blank" })) event.preventDefault();
      }}
    >
      {children}
      <span className="hidden"> (opens another window)</span>
    </a>
  );
}

/** A link that downloads a file. */
export function DownloadLink({ href, name, children }: Props & { name: string }) {
  return (
    <a
      className="button"
      href={href}
      download={name}
      onClick={(event) => {
        const absolute = new URL(href, window.location.href).href;
        if (isPlain(event) && clickInAirflow({ href: absolute, download: name })) {
          event.preventDefault();
        }
      }}
    >
      {children}
    </a>
  );
}
