import { startInTest } from '../examples/start-example.ts'
import { freePort } from '../support/free-port.ts'

export interface AdminExample {
  page(): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: tests read what openapi.json describes
  live(): Promise<any>
  // biome-ignore lint/suspicious/noExplicitAny: tests read what openapi.json describes
  fleet(): Promise<any>
  /** Logs in. @returns the status */
  login(user: string): Promise<number>
}

/** Starts examples/admin, until the test is over. */
export async function openExample(env: NodeJS.ProcessEnv = {}): Promise<AdminExample> {
  const port = await freePort()
  const example = startInTest('admin', { PORT: String(port), ...env })
  await example.printed(/^Open http:/m)
  const origin = `http://127.0.0.1:${port}`
  const read = async (path: string) => (await fetch(`${origin}/limits${path}`)).text()
  return {
    page: () => read(''),
    live: async () => JSON.parse(await read('/api/v1/live')),
    fleet: async () => JSON.parse(await read('/api/v1/fleet')),
    async login(user) {
      const headers = { 'x-user': user }
      return (await fetch(`${origin}/login`, { method: 'POST', headers })).status
    },
  }
}
