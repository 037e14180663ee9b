import { randomUUID } from 'node:crypto'
import { createFetch, waitFor } from '@sluice/client'

/** A client of the API, with one `fetch` for all that it asks. */
const fetch = createFetch({
  observers: {
    onWait: ({ method, waitMs, policies }) =>
      console.log(`${method} waits ${Math.round(waitMs)} ms for '${policies.join() || 'the API'}'`),
  },
})

/** Orders more reports at once than the API takes: the limit tells how long to wait with the rest, the monitor how long with each. */
export async function orderReports(url: string, reports: number): Promise<void> {
  const orders = Array.from({ length: reports }, (_, index) => order(url, index + 1))
  const served = (await Promise.all(orders)).filter((isServed) => isServed)
  console.log(`${served.length} of ${reports} reports are there`)
}

/** Whether its report was made. */
async function order(url: string, number: number): Promise<boolean> {
  const headers = { 'X-API-Key': 'demo' }
  const accepted = await fetch(`${url}/reports`, {
    method: 'POST',
    // With a key of its own an order may be sent again, and is one job all the same.
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
