/** The CPU time of some work, in ms: unlike the clock on the wall, it does not depend on what else the machine does. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
