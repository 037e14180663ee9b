import { randomUUID } from 'node:crypto'
import { createFetch, waitFor } from '@sluice/client'

/** A client of the API, with one `fetch` for all requests. */
const fetch = createFetch({
  observers: {
    onWait: ({ method, waitMs, policies }) =>
      console.log(`${method} waits ${Math.round(waitMs)} ms for '${policies.join() || 'the API'}'`),
  },
})

/** Orders more reports at once than the API accepts: the limit says how long to wait with the rest, the monitor how long for each. */
export async function orderReports(url: string, reports: number): Promise<void> {
  const orders = Array.from({ length: reports }, (_, index) => order(url, index + 1))
  const served = (await Promise.all(orders)).filter((isServed) => isServed)
  console.log(`${served.length} of ${reports} reports are there`)
}

/** Returns whether its report was created. */
async function order(url: string, number: number): Promise<boolean> {
  const headers = { 'X-API-Key': 'demo' }
  const accepted = await fetch(`${url}/reports`, {
    method: 'POST',
    // With its own key, an order can be sent again but remains one job.
    headers: { ...headers, 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() },
    body: JSON.stringify({ number }),
  })
  console.log(`order ${number}: ${accepted.status}, watch ${accepted.headers.get('Location')}`)
  const done = await waitFor(accepted, {
    headers,
    onPending: () => console.log(`order ${number}: not done yet`),
  })
  console.log(`order ${number}: ${done.status} ${await done.text()}`)
  return done.ok
}
