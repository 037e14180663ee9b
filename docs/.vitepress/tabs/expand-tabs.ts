import { express } from './express.ts'
import { fastify } from './fastify.ts'
import { fetch } from './fetch.ts'
import type { Framework, Task } from './framework.ts'
import { hono } from './hono.ts'
import { koa } from './koa.ts'
import { nest } from './nest.ts'

const frameworks: readonly Framework[] = [express, fastify, nest, koa, hono, fetch]

/** What shells import from the package of Sluice, in the order of the imports. */
const names = [
  ...['all', 'firstOf', 'ip', 'RateLimit', 'RateLimitGuard', 'RateLimitModule', 'rateLimit'],
  ...['rateLimitPlugin', 'tiers', 'user'],
]

/** Puts each block with `tabs=<task>` into a module for each framework, as a group of tabs. */
export function expandTabs(markdown: string): string {
  return markdown
    .replace(/^> On \[the site\].*\n\n/m, '')
    .replaceAll(/^```ts tabs=(\w+)\n(.*?)^```\n/gms, (_block, task: Task, code: string) => {
      const tabs = frameworks.map(
        ({ title, shells }) => `\`\`\`ts [${title}]\n${withImports(shells[task](code))}\`\`\`\n`,
      )
      return `::: code-group\n\n${tabs.join('\n')}\n:::\n`
    })
}

function withImports(code: string): string {
  const used = names.filter((name) => new RegExp(`(?<![.\\w])${name}(?=[(,.]| \\})`).test(code))
  return code.replace('…', used.join(', '))
}
