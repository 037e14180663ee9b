import { createServer, type RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { runningOn } from '../adapters/drivers/driver.ts'

/** Serves on a free port of this machine, until the test is over. @returns the origin */
export async function serve(listener: RequestListener): Promise<string> {
  const { port, close } = await runningOn(createServer(listener).listen(0, '127.0.0.1'))
  onTestFinished(close)
  return `http://127.0.0.1:${port}`
}
