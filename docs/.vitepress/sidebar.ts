import type { DefaultTheme } from 'vitepress'
import { entries } from './entries.ts'

/** A link by its text and its path. */
type Link = readonly [text: string, link: string]

const sections: { readonly [title: string]: readonly Link[] } = {
  Start: [
    ['Install, and the first 429', '/start/'],
    ['Count in Redis', '/start/redis'],
    ['Behind a proxy', '/start/proxy'],
    ['Choose a limit', '/choosing'],
    ['Playground', '/playground'],
    ['Production checklist', '/production'],
  ],
  Guides: [
    ['Common tasks', '/tasks'],
    ['Logins', '/tasks#limit-logins'],
    ['Plans', '/tasks#plans'],
    ['Uploads', '/tasks#uploads'],
    ['More recipes', '/recipes'],
    ['GraphQL by complexity', '/recipes#graphql-by-complexity'],
    ['Keys: who is counted', '/keys'],
    ['Limits: what to count', '/limits'],
    ['Routes and several limits', '/routes'],
    ['Queues', '/queues'],
    ['Calls to a third party', '/outbound'],
    ['Clients', '/clients'],
    ['Prefetch for hot keys', '/prefetch'],
    ['Budgets', '/budgets'],
    ['Regions', '/regions'],
    ['Change limits at run time', '/policies'],
    ['Limits from a log', '/simulator'],
    ['Decisions and events in code', '/observing'],
    ['Metrics, alerts and logs', '/observability'],
    ['Admin page', '/admin'],
    ['In an incident', '/incident'],
    ['Test your limits', '/testing'],
  ],
  'Coming from': [
    ['express-rate-limit', '/migrating#from-express-rate-limit-8'],
    ['@fastify/rate-limit', '/migrating#from-fastifyrate-limit-11'],
    ['rate-limiter-flexible', '/migrating#from-rate-limiter-flexible-11'],
    ['@nestjs/throttler', '/migrating#from-nestjsthrottler-6'],
  ],
  Reference: [
    ['Options', '/options'],
    ['Headers', '/headers'],
    ['Errors', '/errors'],
    ['List of metrics', '/metrics'],
    ['Command line', '/cli'],
    ['Glossary', '/glossary'],
    ['Runtimes', '/runtimes'],
    ['Upgrading and stability', '/stability'],
    ['Evidence', '/evidence'],
    ['Company review', '/company-review'],
  ],
  'How it works': [
    ['Architecture', '/architecture'],
    ['Algorithms', '/algorithms'],
    ['Exactness', '/exactness'],
    ['What is stored in Redis', '/layouts'],
    ['Calls to Redis', '/redis'],
    ['Count in Postgres', '/postgres'],
    ['When Redis fails', '/reliability'],
    ['Performance', '/performance'],
    ['Libraries and decisions', '/decisions'],
  ],
  'Build your own': [
    ['Write a store', '/stores'],
    ['Write an adapter', '/adapters'],
    ['Write a broker', '/brokers'],
  ],
}

const api: DefaultTheme.SidebarItem = {
  text: 'API',
  link: '/api/',
  collapsed: true,
  items: entries.map(({ name }) => ({ text: name, link: `/api/${name}` })),
}

/** The structure of the site. */
export const sidebar: DefaultTheme.SidebarItem[] = [
  ...Object.entries(sections).map(([text, links]) => ({
    text,
    collapsed: false,
    items: links.map(([name, link]) => ({ text: name, link })),
  })),
  api,
  { text: 'Comparison', link: '/comparison' },
  { text: 'FAQ', link: '/faq' },
]

/** The line at the top. */
export const nav: DefaultTheme.NavItem[] = [
  { text: 'Start', link: '/start/' },
  { text: 'Recipes', link: '/tasks' },
  { text: 'Playground', link: '/playground' },
  { text: 'Options', link: '/options' },
  { text: 'API', link: '/api/' },
  { text: 'Comparison', link: '/comparison' },
]
