/** What a body can be ended by: node-fetch answers with a stream of Node's. */
interface Endable {
  cancel?(): Promise<void>
  destroy?(): unknown
}

/** Frees the connection of an answer that nobody reads. What goes wrong with such a body does not matter. */
export function dropBody({ body }: Response): void {
  const stream: Endable | null = body
  stream?.cancel?.().catch(() => undefined)
  stream?.destroy?.()
}
