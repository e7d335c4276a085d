import { Component, type ReactNode } from "react";

import { Message } from "./Message";

interface Props {
  children: ReactNode;
}

/** Shows a message in place of a page that can't be rendered. */
export class Guard extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <main>
        <h1>Partition pruning</h1>
        <Message kind="error">
          <p>This page can't be shown: {error.message}</p>
        </Message>
      </main>
    );
  }
}
