/** Fails a round whose subject did not do what its case is about, and would be compared with others that did. */
export function checkTraffic(traffic: 'allowed' | 'denied', allowedShare: number): void {
  const fits = traffic === 'denied' ? allowedShare < 0.05 : allowedShare > 0.9
  if (fits) return
  const percent = (allowedShare * 100).toFixed(1)
  throw new Error(`${percent} % of its checks were allowed, where the case is '${traffic}'`)
}
