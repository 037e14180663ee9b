/** What a call yields for each item, one call after the other. */
export async function inTurn<Item, Result>(
  items: Iterable<Item>,
  call: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const found: Result[] = []
  for (const item of items) found.push(await call(item))
  return found
}

/** What a call yields so many times, one after the other. */
export function repeated<Result>(count: number, call: () => Promise<Result>): Promise<Result[]> {
  return inTurn(Array(count).keys(), call)
}
