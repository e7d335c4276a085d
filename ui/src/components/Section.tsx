import { useId, type ReactNode } from "react";

interface Props {
  title: string;
  note?: ReactNode;
  children: ReactNode;
}

export function Section({ title, note, children }: Props) {
  const id = useId();
  return (
    <section className="section" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {note !== undefined && <p className="note">{note}</p>}
      {children}
    </section>
  );
}
