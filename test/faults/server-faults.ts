import type { ServerFault } from './fault.ts'

/** What happens to the server's process. */
export const serverFaults: readonly ServerFault[] = [
  {
    name: 'refused from boot on',
    store: 'gone',
    beforeBoot: true,
    losesData: true,
    async inflict(rig) {
      await rig.server.stop()
      return () => rig.restart()
    },
  },
  {
    name: 'refused while running',
    store: 'gone',
    losesData: true,
    async inflict(rig) {
      await rig.server.stop()
      return () => rig.restart()
    },
  },
  {
    name: 'frozen (SIGSTOP)',
    store: 'gone',
    lastsMs: 30_000,
    inflict({ server }) {
      server.pause()
      return () => server.resume()
    },
  },
  {
    name: 'killed, back empty',
    store: 'gone',
    losesData: true,
    async inflict(rig) {
      await rig.server.kill()
      return () => rig.restart()
    },
  },
  {
    name: 'killed, back with its data',
    store: 'gone',
    isPersistent: true,
    async inflict(rig) {
      await rig.server.kill()
      return () => rig.restart()
    },
  },
]
