import { useEffect, useRef, useState, type ReactNode } from "react";

interface Props {
  label: string;
  className: string;
  children: ReactNode;
}

/** A block that the keyboard can scroll; it is a stop of the Tab key only if it does scroll. */
export function Scrollable({ label, className, children }: Props) {
  const block = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const element = block.current;
    if (element === null) return;
    const measure = () =>
      setScrolls(
        element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight,
      );
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    return () => observer.disconnect();
  }, []);
  return (
    <div
      ref={block}
      className={className}
      role="group"
      aria-label={label}
      tabIndex={scrolls ? 0 : undefined}
    >
      {children}
    </div>
  );
}

/** Code in its own font, with its line breaks. */
export function Code({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Scrollable className="code" label={label}>
      <pre>{children}</pre>
    </Scrollable>
  );
}
