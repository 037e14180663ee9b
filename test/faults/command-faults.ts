import type { ServerFault } from './fault.ts'
import { repeatedly } from './timing.ts'

/** What somebody does to the server with its own commands. */
export const commandFaults: readonly ServerFault[] = [
  {
    name: 'CLIENT KILL',
    store: 'flaky',
    inflict: ({ server }) => repeatedly(100, () => server.cli('CLIENT', 'KILL', 'TYPE', 'normal')),
  },
  {
    name: 'SCRIPT FLUSH under load',
    store: 'works',
    inflict: ({ server }) => repeatedly(20, () => server.cli('SCRIPT', 'FLUSH', 'SYNC')),
  },
  {
    name: 'maxmemory reached (noeviction)',
    store: 'gone',
    async inflict({ server }) {
      await server.cli('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      return () => server.cli('CONFIG', 'SET', 'maxmemory', '0')
    },
  },
]
