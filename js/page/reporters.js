/**
 * The names of the functions by which apps report to an agent in their own page. The agent puts
 * these functions there. By the protocol's names of the handlers: the names in the protocol, those
 * in its guides, and one that its samples call.
 * @type {Record<'Notification' | 'Progress' | 'CapabilitiesChanged' | 'Elicitation', string[]>}
 */
export const REPORTERS = {
  Notification: ['__abp_notification', '__abpOnNotification', '__abp_notify'],
  Progress: ['__abp_progress', '__abpOnProgress'],
  CapabilitiesChanged: ['__abp_capabilities_changed', '__abpOnCapabilitiesChanged'],
  Elicitation: ['__abp_elicitation', '__abpOnElicitation'],
};
