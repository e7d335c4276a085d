import type { ReactNode } from "react";

interface Props {
  kind: "info" | "warning" | "error";
  children: ReactNode;
}

export function Message({ kind, children }: Props) {
  return (
    <div className={`message message-${kind}`} role={kind === "error" ? "alert" : undefined}>
      {children}
    </div>
  );
}
