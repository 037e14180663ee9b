import type { Rig, ServerFault } from './fault.ts'

async function stop(rig: Rig) {
  await rig.server.stop()
  return () => rig.restart()
}

async function kill(rig: Rig) {
  await rig.server.kill()
  return () => rig.restart()
}

/** What happens to the server's process. */
export const serverFaults: readonly ServerFault[] = [
  {
    ...{ name: 'refused from boot on', store: 'gone', beforeBoot: true, losesData: true },
    inflict: stop,
  },
  { name: 'refused while running', store: 'gone', losesData: true, inflict: stop },
  {
    ...{ name: 'frozen (SIGSTOP)', store: 'gone', lastsMs: 30_000 },
    inflict({ server }) {
      server.pause()
      return () => server.resume()
    },
  },
  { name: 'killed, back empty', store: 'gone', losesData: true, inflict: kill },
  { name: 'killed, back with its data', store: 'gone', isPersistent: true, inflict: kill },
]
