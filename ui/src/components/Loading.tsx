import { ApiError } from "../api/client";
import { Header, type Crumb } from "./Header";
import { Message } from "./Message";

export function Loading({ what }: { what: string }) {
  return (
    <p className="loading" role="status">
      Loading {what}…
    </p>
  );
}

export function Failed({ error, again }: { error: Error; again: () => void }) {
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Message kind="info">
        <p>{error.message}</p>
      </Message>
    );
  }
  return (
    <Message kind="error">
      <p>{error.message}</p>
      <button type="button" onClick={again}>
        Try again
      </button>
    </Message>
  );
}

interface Props {
  title: string;
  crumbs: Crumb[];
  what: string;
  error: Error | null;
  again: () => void;
}

/** A page without its data: not loaded yet, or not available. */
export function Waiting({ title, crumbs, what, error, again }: Props) {
  return (
    <>
      <Header title={title} crumbs={crumbs} />
      <main>
        {error === null ? <Loading what={what} /> : <Failed error={error} again={again} />}
      </main>
    </>
  );
}
