interface Client {
  readonly user: string
  readonly method: string
  readonly path: string
  readonly perSecond: number
}

/** Clients with their requests, and how often per second. */
const clients: readonly Client[] = [
  ...many(20, { user: 'user', method: 'GET', path: '/items', perSecond: 1 }),
  { user: 'acme', method: 'GET', path: '/items', perSecond: 8 },
  { user: 'greedy', method: 'GET', path: '/items', perSecond: 25 },
  { user: 'attacker', method: 'POST', path: '/login', perSecond: 10 },
  ...many(5, { user: 'reader', method: 'GET', path: '/feed', perSecond: 1 }),
  ...many(2, { user: 'traveller', method: 'GET', path: '/world', perSecond: 2 }),
  ...many(4, { user: 'trader', method: 'GET', path: '/rates', perSecond: 3 }),
  ...many(3, { user: 'analyst', method: 'POST', path: '/reports', perSecond: 1 }),
]

function many(count: number, client: Client): readonly Client[] {
  return Array.from({ length: count }, (_, index) => ({
    ...client,
    user: `${client.user}-${index + 1}`,
  }))
}

export interface Traffic {
  /** Number of answers by status. */
  readonly statuses: ReadonlyMap<number, number>
  stop(): void
}

/** Sends requests to the instances of an API in turn, until it is stopped. */
export function startTraffic(urls: readonly string[]): Traffic {
  const statuses = new Map<number, number>()
  let turn = 0
  async function ask(user: string, method: string, path: string): Promise<void> {
    turn += 1
    const url = `${urls[turn % urls.length]}${path}`
    const response = await fetch(url, { method, headers: { 'x-user': user } })
    await response.arrayBuffer()
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
  }
  const timers = clients.map(({ user, method, path, perSecond }) =>
    setInterval(() => {
      // An instance that has exited is reported by its own output.
      ask(user, method, path).catch(() => undefined)
    }, 1_000 / perSecond),
  )
  return {
    statuses,
    stop() {
      for (const timer of timers) clearInterval(timer)
    },
  }
}
